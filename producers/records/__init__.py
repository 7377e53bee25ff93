"""What readers of records share: files of records, families found again in them, and what becomes of their fields.

files -> index, drafts, keeping -> gather
"""
