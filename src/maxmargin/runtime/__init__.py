"""What everything else needs: arrays, words of errors, limits, threads and interrupts."""
