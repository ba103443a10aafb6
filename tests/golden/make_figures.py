#!/usr/bin/env python3
"""Writes figures.h5: what scikit-learn says about scores and targets.

Usage: make_figures.py [OUT]. Needs scikit-learn, NumPy and h5py. The numbers are seeded.
tests/unit/test_figures.c holds the figures of evaluations against them.

Each case is a group of the file:
  /CASE/scores     float32 [N,O]
  /CASE/targets    int32 [N] (-1 = no target) or float32 [N,O] (a row with a NaN = none)
  /CASE/figures    float64, in the order of struct rnnd_metrics; NaN = not defined
  /CASE/table      float64 [O,4], classes: support, precision, recall, F1;
                   [O,6], answers: AUROC and average precision besides
  /CASE/confusion  float64 [O,O], classes only
"""
import os
import sys
import warnings

import h5py
import numpy as np
from sklearn import metrics as sk

warnings.filterwarnings("ignore")


def class_figures(scores, labels):
    kept = labels >= 0
    y, s = labels[kept], scores[kept]
    said = s.argmax(axis=1)
    outputs = range(scores.shape[1])
    figures = [sk.accuracy_score(y, said), sk.balanced_accuracy_score(y, said),
               sk.f1_score(y, said, average="macro", zero_division=0)]
    if scores.shape[1] == 2:
        margin = s[:, 1] - s[:, 0]
        figures += ranking(y == 1, margin)
    precision, recall, f1, support = sk.precision_recall_fscore_support(
        y, said, labels=outputs, zero_division=0)
    return dict(figures=figures, table=np.stack([support, precision, recall, f1], axis=1),
                confusion=sk.confusion_matrix(y, said, labels=outputs))


def ranking(answers, scores):
    return [sk.roc_auc_score(answers, scores) if 0 < answers.sum() < len(answers) else np.nan,
            sk.average_precision_score(answers, scores) if answers.any() else np.nan]


def answer_figures(scores, targets):
    kept = ~np.isnan(targets).any(axis=1)
    y, s = targets[kept].astype(int), scores[kept].astype(np.float64)
    each = np.array([ranking(y[:, k] == 1, s[:, k]) for k in range(s.shape[1])])
    loss = np.mean(np.sum(np.logaddexp(0, s) - s * y, axis=1))
    figures = [loss, sk.f1_score(y, s > 0, average="macro", zero_division=0),
               np.nanmean(each[:, 0]), np.nanmean(each[:, 1])]
    precision, recall, f1, support = sk.precision_recall_fscore_support(
        y, s > 0, zero_division=0)
    return dict(figures=figures, table=np.column_stack([support, precision, recall, f1, each]))


def value_figures(scores, targets):
    kept = ~np.isnan(targets).any(axis=1)
    y, p = targets[kept].astype(np.float64), scores[kept].astype(np.float64)
    return dict(figures=[np.sqrt(sk.mean_squared_error(y, p)), sk.mean_absolute_error(y, p),
                         sk.r2_score(y, p)])


def coarse(rng, shape):
    """Scores on a grid, so that many are equal."""
    return (rng.integers(-12, 13, shape) / 8).astype(np.float32)


def cases():
    rng = np.random.default_rng(20)
    labels = rng.integers(0, 2, 400)
    scores = coarse(rng, (400, 2))
    scores[:, 1] += (labels / 2).astype(np.float32)
    labels[5::9] = -1
    yield "binary", scores, labels, class_figures
    yield "one_class", coarse(rng, (20, 2)), np.zeros(20, int), class_figures
    # class 4 is neither a target nor predicted, class 3 is only predicted
    labels = rng.integers(0, 3, 300)
    scores = coarse(rng, (300, 5))
    scores[:, 4] = -9
    scores[np.arange(300), labels] += 1
    labels[::7] = -1
    yield "classes", scores, labels, class_figures
    # the last answer is never yes
    answers = (rng.random((250, 4)) < [0.5, 0.1, 0.9, 0]).astype(np.float32)
    scores = (coarse(rng, (250, 4)) + answers).astype(np.float32)
    scores[3, 0], scores[4, 0] = 0.0, -0.0
    answers[2::11, 1] = np.nan
    yield "answers", scores, answers, answer_figures
    values = rng.standard_normal((200, 3)) * [1, 0.01, 100] + [0, 1000, 5]
    scores = values + rng.standard_normal((200, 3)) * [0.3, 0.02, 40]
    values = values.astype(np.float32)
    values[::13, 2] = np.nan
    yield "values", scores.astype(np.float32), values, value_figures
    values = np.full((30, 2), 0.1, np.float32)
    scores = values.copy()
    scores[7, 1] += 1
    yield "constant", scores, values, value_figures


def main():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "figures.h5")
    with h5py.File(sys.argv[1] if len(sys.argv) > 1 else beside, "w") as f:
        for name, scores, targets, figures_of in cases():
            group = f.create_group(name)
            group["scores"] = scores
            group["targets"] = targets if targets.ndim == 2 else targets.astype(np.int32)
            for key, value in figures_of(scores, targets).items():
                group[key] = np.asarray(value, np.float64)


main()
