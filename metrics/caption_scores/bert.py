"""BERTScore (Zhang et al. 2020; RRS-10K Eq. 5-7) with the functions of the `bert-score` library.

The library is kept as it is; what breaks or misleads with it is met here, before it is called:
empty texts, layers of local models, tokenizers without a length limit, names with "t5" in them,
missing baselines, worker pools, and similarities that depend on the padding of a batch.
A leaf module: it imports no other module of this folder.
"""

import csv
import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

DEFAULT_MODEL = "roberta-large"
NO_LIMIT_TOKENS = 10**6
_MODEL_FILES = {".bin", ".json", ".model", ".safetensors", ".txt"}
_INSTALL = (
    "BERTScore needs bert-score, torch and transformers, which are not installed: "
    "pip install 'soubench[caption]', or 'bert-score>=0.3.13,<0.4' 'torch>=2.6' "
    "'transformers>=5.20,<6'"
)


class BertOptions(NamedTuple):
    """How to compute BERTScore.

    Attributes:
        model_type: Name on the Hub, or a local folder; None is ``roberta-large``.
        num_layers: Layer whose vectors are compared; None is the library's own choice, which it
            has for models it knows by name only.
        batch_size: Texts encoded together; changes speed and memory, not the result.
        device: For example "cpu" or "cuda:1"; None is "cuda" where there is one.
        idf: Weigh tokens by inverse document frequency in all references of the call.
        rescale_with_baseline: Report (x - b) / (1 - b), b being the score of unrelated texts.
        baseline_path: File of baselines with columns LAYER,P,R,F; None is the library's English
            one for this model.
    """

    model_type: str | None = None
    num_layers: int | None = None
    batch_size: int = 64
    device: str | None = None
    idf: bool = False
    rescale_with_baseline: bool = False
    baseline_path: str | None = None


class Triple(NamedTuple):
    """Precision, recall and F1 of one pair, as fractions."""

    p: float
    r: float
    f1: float


class BertScores(NamedTuple):
    """What was measured.

    Attributes:
        rows: One triple per row.
        setting: Library, model, layer, idf and rescaling, in words.
        warnings: What a reader of the scores should know.
    """

    rows: list[Triple]
    setting: str
    warnings: list[str]


class _Model(NamedTuple):
    name: str
    model: Any
    tokenizer: Any


class _Encoded(NamedTuple):
    """Vectors (K, d) and weights (K,) of the K tokens of one text, special tokens included."""

    vectors: Any
    weights: Any


ZERO = Triple(0.0, 0.0, 0.0)


def bert_scores(
    predictions: Sequence[str], references: Sequence[Sequence[str]], options: BertOptions
) -> BertScores:
    """Score every row; of several references each of P, R and F1 takes its own best, as upstream.

    A pair with an empty text, or one whose tokens all weigh nothing, scores 0, rescaled or not.

    Args:
        predictions: One text per row.
        references: One or more texts per row.
        options: The setting.

    Raises:
        ImportError: bert-score or torch is missing.
        OSError: The model cannot be loaded.
        ValueError: An option does not fit the model or the machine.
    """
    try:
        from bert_score.utils import get_idf_dict
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    folder, layer = _model_and_layer(options)
    baseline = _baseline(options, layer)
    _check_whole("batch_size", options.batch_size, least=1)
    name = options.model_type or DEFAULT_MODEL
    digest = _digest(folder) if folder else ""
    loaded = _load(str(folder or name), digest, layer, _device(options.device))

    known = [text for group in references for text in group if text.strip()]
    if options.idf:
        weights = get_idf_dict(known, loaded.tokenizer, nthreads=0)
    else:
        weights = defaultdict(lambda: 1.0)
        weights[loaded.tokenizer.cls_token_id] = 0.0
        weights[loaded.tokenizer.sep_token_id] = 0.0
    texts = {text for text in (*predictions, *known) if text.strip()}
    encoded = _encode(texts, loaded, weights, options.batch_size)

    rows = []
    weightless = 0
    for prediction, group in zip(predictions, references, strict=True):
        pairs = [
            (encoded[prediction], encoded[text])
            for text in group
            if prediction in encoded and text in encoded
        ]
        weighted = [pair for pair in pairs if all(text.weights.sum() > 0 for text in pair)]
        weightless += bool(pairs) and not weighted
        scores = [_rescaled(_score(*pair), baseline) for pair in weighted]
        rows.append(Triple(*map(max, zip(*scores, strict=True))) if scores else ZERO)

    warnings = []
    if weightless:
        why = "; idf needs references that differ" if options.idf else ""
        warnings.append(
            f"bertscore: in {weightless} of {len(rows)} rows no token has a weight, they score 0"
            + why
        )
    limit = loaded.tokenizer.model_max_length
    long = sum(len(text.weights) >= limit for text in encoded.values())
    if long:
        warnings.append(f"bertscore: {long} texts reach the model's {limit} tokens and may be cut")
    rescaled = "no"
    if baseline:
        rescaled = Path(options.baseline_path).name if options.baseline_path else "english"
    return BertScores(
        rows,
        f"bertscore: bert-score {version('bert-score')} transformers {version('transformers')} "
        f"model={loaded.name} layer={layer} idf={'yes' if options.idf else 'no'} "
        f"rescaled={rescaled}",
        warnings,
    )


def _model_and_layer(options: BertOptions) -> tuple[Path | None, int]:
    """Return the local folder, or None for a model of the Hub, and the layer.

    The library looks up the layer by name and answers a local path with a KeyError.
    """
    from bert_score.utils import model2layers

    name = options.model_type or DEFAULT_MODEL
    path = Path(name).expanduser()
    folder = path.resolve() if path.is_dir() else None
    is_hub_name = len(path.parts) < 3 and not name.startswith(("/", ".", "~"))
    if folder is None and not is_hub_name:
        msg = f"model_type: expected a folder that exists or a name on the Hub, got {name!r}"
        raise ValueError(msg)
    layer = options.num_layers
    if layer is None and folder is None:
        layer = model2layers.get(name)
    if layer is None:
        msg = (
            f"num_layers: expected the layer to compare, got None; bert-score has no default for "
            f"{name!r}, only for models it knows by name"
        )
        raise ValueError(msg)
    _check_whole("num_layers", layer, least=0)
    return folder, layer


def _check_whole(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{name}: expected a whole number from {least}, got {value!r}"
        raise ValueError(msg)


def _baseline(options: BertOptions, layer: int) -> Triple | None:
    """Return the baselines of the layer; None where nothing is rescaled.

    The library's ``score`` only prints a warning when the file is missing, and returns raw scores.
    """
    import bert_score

    if not options.rescale_with_baseline:
        if options.baseline_path is not None:
            msg = (
                "baseline_path: has no effect while rescale_with_baseline is False; set it to True"
            )
            raise ValueError(msg)
        return None
    name = options.model_type or DEFAULT_MODEL
    own = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{name}.tsv"
    path = Path(options.baseline_path) if options.baseline_path is not None else own
    if not path.is_file():
        msg = (
            f"rescale_with_baseline: no file of baselines at {str(path)!r}; bert-score ships them "
            "for models of the Hub by name, for others give baseline_path (columns LAYER,P,R,F)"
        )
        raise ValueError(msg)
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if int(row["LAYER"]) == layer:
                    return Triple(float(row["P"]), float(row["R"]), float(row["F"]))
    except (KeyError, TypeError, ValueError) as error:
        msg = f"baseline_path: {str(path)!r}: expected columns LAYER,P,R,F with numbers"
        raise ValueError(msg) from error
    msg = f"baseline_path: {str(path)!r} has no row for layer {layer}"
    raise ValueError(msg)


def _device(name: str | None) -> str:
    import torch

    has_cuda = torch.cuda.is_available()
    if name is None:
        return "cuda" if has_cuda else "cpu"
    try:
        kind = torch.device(name).type
    except RuntimeError as error:
        msg = f"device: expected a name such as 'cpu' or 'cuda:0', got {name!r}"
        raise ValueError(msg) from error
    if kind == "cuda" and not has_cuda:
        msg = f"device: expected one that this machine has, got {name!r}, but CUDA is not available"
        raise ValueError(msg)
    return name


def _digest(folder: Path) -> str:
    """Return what tells one local model from another of the same name, and keys the cache."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in _MODEL_FILES:
            digest.update(path.name.encode())
            with path.open("rb") as data:
                digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()[:12]


@contextmanager
def neutral_path(source: str, *, is_t5: bool) -> Iterator[str]:
    """Give a path that holds "t5" exactly if the model is one; a link where its own does not fit.

    The library loads whatever has "t5" in its path as a T5 encoder: other models then get random
    weights and only a load report tells (test: test_a_path_with_t5_in_it_loads_the_same_model).

    Args:
        source: The model's name or folder.
        is_t5: Whether its configuration names a T5 model.

    Raises:
        ValueError: No link can help: a model of the Hub, or no temporary folder without "t5".
    """
    if ("t5" in source) == is_t5:
        yield source
        return
    parents = [p for p in (tempfile.gettempdir(), "/tmp") if "t5" not in p and Path(p).is_dir()]
    if not Path(source).is_dir() or not parents:
        msg = (
            f"model_type: bert-score tells T5 models by 't5' in the name, which is wrong for "
            f"{source!r}; give a local folder, and a TMPDIR without 't5' for a link to it"
        )
        raise ValueError(msg)
    outer = tempfile.mkdtemp(dir=parents[0])
    while "t5" in outer:  # the random part can spell it
        Path(outer).rmdir()
        outer = tempfile.mkdtemp(dir=parents[0])
    link = Path(outer) / ("t5" if is_t5 else "model")
    try:
        link.symlink_to(source, target_is_directory=True)
        yield str(link)
    finally:
        link.unlink(missing_ok=True)
        Path(outer).rmdir()


@lru_cache(maxsize=1)
def _load(source: str, digest: str, layer: int, device: str) -> _Model:
    """Load a model cut to its first layers; weights not at hand come from the Hub.

    Args:
        source: Name on the Hub or local folder.
        digest: Of the folder's content, so that a changed folder is loaded anew.
        layer: Layers to keep.
        device: Where it runs.
    """
    from bert_score.utils import get_model, get_tokenizer
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(source)
        with neutral_path(source, is_t5="t5" in config.model_type) as path:
            tokenizer = get_tokenizer(path)
            model = get_model(path, layer)
    except AssertionError as error:
        msg = f"num_layers: expected a layer that the model has, got {layer}: {error}"
        raise ValueError(msg) from error
    except OSError as error:
        msg = (
            f"model_type: {source!r} is not a whole model folder, not in the Hub cache, and cannot "
            "be fetched from the Hub; give a local folder with num_layers, or fetch the model once "
            "with a network"
        )
        raise OSError(msg) from error
    if tokenizer.model_max_length > NO_LIMIT_TOKENS:
        # Truncation overflows without a limit. RoBERTa counts positions from 2; others lose 2.
        tokenizer.model_max_length = getattr(config, "max_position_embeddings", 514) - 2
    revision = digest or getattr(config, "_commit_hash", None)
    name = f"{Path(source).name if digest else source}{f'@{revision[:12]}' if revision else ''}"
    return _Model(name, model.to(device), tokenizer)


def _encode(
    texts: set[str], loaded: _Model, weights: dict[int, float], batch_size: int
) -> dict[str, _Encoded]:
    """Encode every distinct text once, texts of like length together, in an order of their own."""
    from bert_score.utils import get_bert_embedding

    encoded = {}
    ordered = sorted(texts, key=lambda text: (len(text), text))
    device = next(loaded.model.parameters()).device
    for start in range(0, len(ordered), batch_size):
        batch = ordered[start : start + batch_size]
        vectors, masks, idf = get_bert_embedding(
            batch, loaded.model, loaded.tokenizer, weights, device=device
        )
        for text, matrix, mask, row in zip(batch, vectors.cpu(), masks.cpu(), idf, strict=True):
            length = int(mask.sum())
            encoded[text] = _Encoded(matrix[:length], row[:length])
    return encoded


def _score(prediction: _Encoded, reference: _Encoded) -> Triple:
    """Score one pair on its own: in a padded batch the library turns negative best matches to 0."""
    import torch
    from bert_score.utils import greedy_cos_idf

    # The library works in place.
    sides = [
        (
            side.vectors[None].clone(),
            torch.ones(1, len(side.weights)),
            side.weights[None].clone(),
        )
        for side in (reference, prediction)
    ]
    p, r, f1 = greedy_cos_idf(*sides[0], *sides[1])
    return Triple(float(p), float(r), float(f1))


def _rescaled(score: Triple, baseline: Triple | None) -> Triple:
    if baseline is None:
        return score
    return Triple(*((x - b) / (1 - b) for x, b in zip(score, baseline, strict=True)))
