"""Gradio demo of the metric, run by the Hub Space."""

from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("attribute_f1.py")))


def compare(reply: str, reference: str) -> dict[str, float]:
    """Return the F1 of each attribute of one picture.

    Args:
        reply: What the model said.
        reference: The target text.
    """
    f1: dict[str, float] = metric.compute(predictions=[reply], references=[reference])["f1"]
    return f1


demo = gr.Interface(
    fn=compare,
    inputs=[
        gr.Textbox(label="Reply", value="(Square, color=Red), (Circle, color=Red)", lines=4),
        gr.Textbox(label="Reference", value="(Circle, color=Red), (Square, color=Blue)", lines=4),
    ],
    outputs=[gr.JSON(label="F1")],
    title="attribute_f1",
    description="Are the right attributes there at all, whichever shape has them?",
)

if __name__ == "__main__":
    demo.launch()
