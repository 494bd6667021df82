"""Gradio demo of the metric, run by the Hub Space."""

from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("dice.py")))


def compare(prediction: str, reference: str) -> tuple[float, str]:
    """Return the Dice coefficient of two masks, and why the first could not be read, if so.

    Args:
        prediction: JSON of run lengths, polygons or rows of pixels.
        reference: The same.
    """
    try:
        result = metric.compute(predictions=[prediction], references=[reference])
    except ValueError as error:
        raise gr.Error(str(error)) from error
    return result["dice"], "".join(entry["reason"] for entry in result["unparsed"])


demo = gr.Interface(
    fn=compare,
    inputs=[
        gr.Textbox(label="Predicted mask, JSON", value='{"polygons": [[2, 1, 7, 1, 7, 5, 2, 5]]}'),
        gr.Textbox(
            label="Reference mask, JSON",
            value='{"size": [6, 8], "polygons": [[2, 1, 6, 1, 6, 4, 2, 4]]}',
        ),
    ],
    outputs=[gr.Number(label="Dice"), gr.Textbox(label="Not read because")],
    title="dice",
    description="Overlap of two masks, counted on run lengths.",
    examples=[["[[1, 1], [0, 0]]", '{"size": [2, 2], "counts": [0, 1, 3]}']],
)

if __name__ == "__main__":
    demo.launch()
