"""bgrl: train, measure and export self-play backgammon nets."""
