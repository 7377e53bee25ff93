"""evaluation: how well an index finds what people have judged relevant."""
