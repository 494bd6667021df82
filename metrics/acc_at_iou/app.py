"""Gradio demo of the metric, run by the Hub Space."""

import json
from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("acc_at_iou.py")))


def read(reply: str, format: str, image_size: str, reference: str) -> tuple[str, float]:
    """Return the boxes read from one reply, and the IoU of the first with the reference.

    Args:
        reply: What the model said.
        format: Name of a format.
        image_size: Width and height of the picture, as JSON.
        reference: The true box in pixels, as JSON.
    """
    result = metric.compute(
        predictions=[reply],
        references=[json.loads(reference)],
        format=format.strip(),
        image_sizes=[json.loads(image_size)],
    )
    return json.dumps(result["boxes"][0]), result["ious"][0]


demo = gr.Interface(
    fn=read,
    inputs=[
        gr.Textbox(label="Reply", value='[{"bbox_2d": [100, 200, 300, 400], "label": "ship"}]'),
        gr.Textbox(label="Format", value="qwen3_vl"),
        gr.Textbox(label="Width and height", value="[2000, 500]"),
        gr.Textbox(label="True box in pixels", value="[200, 100, 600, 200]"),
    ],
    outputs=[gr.Textbox(label="Boxes in pixels"), gr.Number(label="IoU")],
    title="acc_at_iou",
    description="Reads boxes in the format you declare. Never guesses a scale.",
)

if __name__ == "__main__":
    demo.launch()
