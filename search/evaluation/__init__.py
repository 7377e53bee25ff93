"""evaluation: measures how well an index finds the documents that people judged relevant."""
