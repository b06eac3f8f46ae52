"""The text of the word count: which files, in which order, in which portions, and what is no corpus."""

import os
import tracemalloc

import pytest

from experiments.errors import BadInput
from experiments.workloads.catalogue import WordCountSpec
from workloads.wordcount.corpus import LONGEST_LINE, PASSAGE_BYTES, passages


def spec(path, megabytes=1.0):
    return WordCountSpec(corpus=str(path), corpus_mb=megabytes)


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_the_order_depends_on_the_names_alone(tmp_path):
    names = ["b/two.md", "a/three.txt", "a/one.py", "c.rst"]
    for folder, order in ((tmp_path / "first", names), (tmp_path / "second", names[::-1])):
        write(folder, {name: f"text of {name}" for name in order})
    expected = [f"text of {name}".encode() for name in sorted(names)]
    assert passages(spec(tmp_path / "first")) == passages(spec(tmp_path / "second")) == expected


def test_only_text_is_read(tmp_path):
    write(tmp_path, {"image.png": "binary", "notes.md": "words", "noext": "none", "folder.txt/inner.bin": "no"})
    assert passages(spec(tmp_path)) == [b"words"]


def test_one_file_may_have_any_name(tmp_path):
    write(tmp_path, {"novel": "call me\nwhat you like\n"})
    assert passages(spec(tmp_path / "novel")) == [b"call me what you like"]


def test_lines_are_joined_into_passages_that_never_cross_files(tmp_path):
    line = "x" * 59
    write(tmp_path, {"a.txt": f"  {line}  \n\n" * 9, "b.txt": "short\n"})
    found = passages(spec(tmp_path))
    assert [len(passage) for passage in found] == [239, 239, 59, 5]
    assert all(len(passage) >= PASSAGE_BYTES for passage in found[:2])
    assert found[0] == b" ".join([line.encode()] * 4)


def test_an_endless_line_is_cut(tmp_path):
    write(tmp_path, {"minified.html": "y" * 100_000 + "\n" + "z" * 300})
    assert passages(spec(tmp_path)) == [b"y" * LONGEST_LINE, b"z" * 300]


def test_no_more_text_than_asked_for(tmp_path):
    write(tmp_path, {f"{i:03}.txt": "words and words\n" * 400 for i in range(40)})
    half = passages(spec(tmp_path, 0.125))
    size = sum(map(len, half))
    assert 0.125 * 2**20 <= size < 0.125 * 2**20 + PASSAGE_BYTES + LONGEST_LINE
    assert half == passages(spec(tmp_path, 1.0))[: len(half)]


def test_a_file_larger_than_memory_is_read_as_far_as_it_is_needed(tmp_path):
    write(tmp_path, {"huge": "words and words\n" * 4000})
    os.truncate(tmp_path / "huge", 2**26)  # the rest is a hole, and takes no room on the disk
    tracemalloc.start()
    found = passages(spec(tmp_path / "huge", 0.03))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(map(len, found)) >= 0.03 * 2**20
    assert peak < 2**22


def test_every_kind_of_line_end_ends_a_line(tmp_path):
    (tmp_path / "mixed.txt").write_bytes(b"one\rtwo\r\nthree\n\x85four\x1cfive\x0bsix")
    assert passages(spec(tmp_path)) == [b"one two three \x85four\x1cfive\x0bsix"]


def test_the_default_is_the_text_of_the_installed_packages():
    found = passages(WordCountSpec(corpus_mb=0.1))
    assert sum(map(len, found)) >= 0.1 * 2**20
    assert found == passages(WordCountSpec(corpus_mb=0.1))


def test_a_corpus_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(BadInput, match="exists") as mistake:
        passages(spec(tmp_path / "nowhere"))
    assert (mistake.value.field, mistake.value.value) == ("workload.corpus", str(tmp_path / "nowhere"))


def test_a_corpus_that_cannot_be_looked_at_is_named(tmp_path):
    endless = str(tmp_path / ("x" * 300))
    with pytest.raises(BadInput, match=r"text that can be read \(File name too long\)") as mistake:
        passages(spec(endless))
    assert (mistake.value.field, mistake.value.value) == ("workload.corpus", endless)


@pytest.mark.parametrize("files", [{}, {"image.png": "binary"}, {"empty.txt": "", "blank.md": " \n\n"}])
def test_a_corpus_without_text_is_named(tmp_path, files):
    write(tmp_path, files)
    with pytest.raises(BadInput, match=r"text in files that end in \.py"):
        passages(spec(tmp_path))


def test_a_file_that_cannot_be_decoded_is_text_all_the_same(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 cr\xe8me")
    assert passages(spec(tmp_path)) == [b"caf\xe9 cr\xe8me"]


def test_a_link_to_nowhere_is_passed_over(tmp_path):
    write(tmp_path, {"real.txt": "words"})
    os.symlink(tmp_path / "gone.txt", tmp_path / "dangling.txt")
    assert passages(spec(tmp_path)) == [b"words"]
