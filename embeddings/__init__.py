"""Vectors for texts, computed once.

    with closing(open_encoder(EncoderSettings())) as encoder, VectorCache.open("vectors.db") as cache:
        for embedded in vectors_for(stream_of_hash_and_text, encoder, cache):
            ...

`settings` says which encoder is wanted and makes it: a model on this machine (`load`) or one behind an endpoint
(`endpoint`); `encoder` says what they have in common. `cache` keeps what they computed, `vectors` joins the two.
`stats` describes a cache, `maintenance` checks and shrinks it.
"""
