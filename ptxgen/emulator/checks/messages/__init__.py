"""What findings say: the fix between two lines, lines of the kernel's text, repeats of one pair of lines."""
