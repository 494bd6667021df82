"""Gradio demo of the metric, run by the Hub Space."""

from pathlib import Path

import evaluate
import gradio as gr  # type: ignore[import-not-found]  # the Space brings it

metric = evaluate.load(str(Path(__file__).with_name("caption_scores.py")))


def rate(caption: str, references: str) -> dict[str, object]:
    """Return BLEU and ROUGE of one caption.

    Args:
        caption: What the model wrote.
        references: One reference per line.
    """
    lines = [line for line in references.splitlines() if line.strip()]
    result: dict[str, object] = metric.compute(predictions=[caption], references=[lines or [""]])
    return result


demo = gr.Interface(
    fn=rate,
    inputs=[
        gr.Textbox(label="Caption", value="Two ships lie at the long pier."),
        gr.Textbox(label="References, one per line", value="Two ships lie at a pier.", lines=4),
    ],
    outputs=gr.JSON(label="Scores"),
    title="caption_scores",
    description="BLEU and ROUGE of a caption; BERTScore needs the library, see the card.",
)

if __name__ == "__main__":
    demo.launch()
