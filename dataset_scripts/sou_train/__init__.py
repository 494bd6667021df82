"""SOU-Train: the questions of SOU-VQA to train on."""
