"""Gradio demo of the metric, run by the Hub Space."""

from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("sama.py")))
REFERENCE = (
    "(Circle, quadrant=bottom left, center_coordinates=(50, 150), relative_position=below Square, "
    "rotation=0, occlusion=No, color=Blue)"
)
REPLY = (
    "A Blue Circle is located in the bottom left quadrant, centred at coordinates (53, 154), with "
    "relative positions described as below Square, rotated by 0 degrees, and is occluded."
)


def compare(reply: str, reference: str) -> tuple[float, float, str, str]:
    """Return SAMA, exact SAMA, and the center and rotation errors of one picture.

    Args:
        reply: What the model said.
        reference: The target text.
    """
    result = metric.compute(predictions=[reply], references=[reference])
    return (
        result["sama"],
        result["sama_exact"],
        f"{result['center_rmse']} px",
        f"{result['rotation_rmse']} degrees",
    )


demo = gr.Interface(
    fn=compare,
    inputs=[
        gr.Textbox(label="Reply", value=REPLY, lines=4),
        gr.Textbox(label="Reference", value=REFERENCE, lines=4),
    ],
    outputs=[
        gr.Number(label="SAMA"),
        gr.Number(label="SAMA, all attributes right"),
        gr.Textbox(label="Center error"),
        gr.Textbox(label="Rotation error"),
    ],
    title="sama",
    description="Are shapes named with the right attributes?",
)

if __name__ == "__main__":
    demo.launch()
