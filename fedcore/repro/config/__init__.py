"""The configuration's files: papers, what they print, and their short forms."""
