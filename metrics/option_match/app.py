"""Gradio demo of the metric, run by the Hub Space."""

from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("option_match.py")))


def read(reply: str, options: str, reference: str) -> tuple[str, float]:
    """Return the letter read from one reply, and its accuracy.

    Args:
        reply: What the model said.
        options: One option text per line.
        reference: The right letter.
    """
    result = metric.compute(
        predictions=[reply],
        references=[reference.strip()],
        options=[[line.strip() for line in options.splitlines() if line.strip()]],
    )
    return result["letters"][0] or "unparsed", result["accuracy"]


demo = gr.Interface(
    fn=read,
    inputs=[
        gr.Textbox(label="Reply", value="A traffic light, so the answer is **B**."),
        gr.Textbox(label="Options, one per line", value="warning-cone\ntraffic-light", lines=4),
        gr.Textbox(label="Right letter", value="B"),
    ],
    outputs=[gr.Textbox(label="Letter read"), gr.Number(label="Accuracy")],
    title="option_match",
    description="Reads the letter a reply commits to. Never guesses.",
    examples=[["It is not a van but a ship.", "van\nship\nplane", "B"]],
)

if __name__ == "__main__":
    demo.launch()
