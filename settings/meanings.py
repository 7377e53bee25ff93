"""What each setting means, for the documentation."""

MEANINGS = {
    "chunks": "the bus root: a folder, or an address of object storage (`s3://…`), with `canonical/` and `manifest/`",
    "home": "folder for chunksink's own records, the cache of vectors and the embedded index",
    "require_source_checksum": "refuse chunks whose provenance has no `source_checksum`",
    "model": "the embedding model: a folder, a name on the hub (`owner/name` or `owner/name@revision`), or the "
    "endpoint's name for it",
    "model_cache": "folder for models prepared for this machine; by default in the user's cache folder",
    "precision": "`auto` (bfloat16 if the hardware can, else float32), `float32`, `bfloat16`, or "
    "`int8` (faster and less precise)",
    "long_texts": "how to embed texts longer than the model's maximum: `windows` (the mean of the vectors of all "
    "parts), or `truncate` (the beginning only)",
    "max_length": "lowers the model's maximum, in tokens; for an endpoint in characters",
    "dimensions": "stores only the first numbers of each vector, if the model declares that in "
    "`matryoshka_dimensions`; the cache has all",
    "embed_context": 'what is embedded before each text: `title, headings`, or `""` for nothing',
    "query_prompt": 'prefix for queries; by default the model\'s own; `""` for none',
    "passage_prompt": 'prefix for chunks; by default the model\'s own; `""` for none',
    "endpoint": "URL of an OpenAI-compatible endpoint that computes the vectors, without `/embeddings`",
    "endpoint_key_variable": "name of the environment variable that contains the endpoint's key",
    "endpoint_dimensions": "length of the vectors, for models that can shorten them",
    "fusion_weight": "weight of keyword search in hybrid scores, 0 to 1; by default each query decides it; "
    "`chunksink eval --tune` measures weights",
    "token_price": "price of a million tokens at the endpoint, for `chunksink plan`",
    "sinks": "where the index is written: names of sinks, in the environment variable separated by commas; "
    "if `MEILI_URL` is set the default is `meilisearch,chroma`, unless the index already uses `fts`",
    "sink": "options of a sink: a table `[sink.NAME]`, in the environment `CHUNKSINK_SINK_NAME_OPTION`",
    "fields": "fields of your own for filters, facets, sorting and keyword search: a table `[fields.NAME]`",
    "rerank": "a model that ranks the best hits of a search again: a table `[rerank]`",
    "engine": "where `sync` and `rebuild` compute vectors: `local`, or workers on `ray`",
    "ray": "workers on Ray, and the place of their vectors: a table `[ray]`",
    "tenants": "`required`: a search that names no tenant gets no documents, and on the command line it is an error; "
    "`optional`: it searches the documents of all tenants",
    "tokens": "who may use `chunksink serve`: entries `SHA256-OF-A-TOKEN = TENANT`, with the tenant `*` for all "
    "tenants; in the environment variable separated by commas",
    "patience": "seconds for which a call is repeated if an engine does not answer or is overloaded",
    "documents_per_second": "highest average rate of writes to a sink, for engines that other programs use too",
    "on_failure": "a program and its arguments, run after a failed run, with a JSON report on standard input; "
    "in the environment variable written as a command line",
    "on_drift": "the same, after a `verify` that found differences",
    "notify_timeout": "seconds after which such a program is killed",
}
