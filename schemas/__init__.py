"""The JSON Schemas of every document that the project reads or writes."""
