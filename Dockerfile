# The command `chunksink` with its default model.
#
#     docker build --tag chunksink .
#     docker run --rm --volume "$PWD:/data" --user "$(id -u):$(id -g)" chunksink ingest /data/notes --sync
#
# For a smaller image, install torch without CUDA:
# docker build --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu --tag chunksink .

FROM python:3.11-slim-bookworm AS build
ARG PIP_EXTRA_INDEX_URL
ARG EXTRAS=offline-model,pdf,docx,office,mcp
WORKDIR /source
COPY . .
RUN python -m venv /opt/chunksink \
    && /opt/chunksink/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.11-slim-bookworm
# The folder exists in the image, so a named volume that is mounted there belongs to this user.
RUN useradd --uid 10001 --create-home chunksink \
    && install --directory --owner=chunksink --group=chunksink /data
COPY --from=build /opt/chunksink /opt/chunksink
ENV PATH=/opt/chunksink/bin:$PATH \
    ANONYMIZED_TELEMETRY=False \
    CHUNKSINK_MODEL_CACHE=/data/.cache/models \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
ENTRYPOINT ["chunksink"]
CMD ["--help"]
