"""What everything else needs: arrays, words of errors, limits and interrupts, threads."""
