"""Gradio demo of the metric, run by the Hub Space."""

from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("matched_rmse.py")))


def compare(reply: str, reference: str) -> tuple[float, str]:
    """Return the count error and the center error of one picture.

    Args:
        reply: What the model said.
        reference: The target text.
    """
    result = metric.compute(predictions=[reply], references=[reference])
    return result["count_rmse"], f"{result['center_rmse']} px"


demo = gr.Interface(
    fn=compare,
    inputs=[
        gr.Textbox(
            label="Reply",
            value="There are 2 leaves, centred at coordinates (13, 24), (50, 50).",
        ),
        gr.Textbox(label="Reference", value="(leaves=2, centers=[(50, 50), (10, 20)])"),
    ],
    outputs=[gr.Number(label="Count error"), gr.Textbox(label="Center error")],
    title="matched_rmse",
    description="How many points, and where?",
)

if __name__ == "__main__":
    demo.launch()
