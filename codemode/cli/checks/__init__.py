"""What `doctor` tries, one check after the other; each says what it found and what to do about it."""
