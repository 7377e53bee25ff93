"""Vectors for texts, computed once.

    with closing(open_encoder(EncoderSettings())) as encoder, VectorCache.open("vectors.db") as cache:
        for embedded in vectors_for(passages, encoder, cache):
            ...

`settings` describes an encoder and opens it: a model on this machine (`load`) or one behind an endpoint (`endpoint`);
`encoder` is their common interface. A model is run by OpenVINO (`openvino_runtime`) from a graph (`graphs`, made by
`convert`), or by sentence-transformers (`torch_runtime`). `cache` keeps vectors; `vectors` encodes only texts
without a cached vector. `stats` describes a cache, `maintenance` checks and shrinks it.
"""
