"""Markdown texts made at random: of lines that begin, end or interrupt blocks, or almost do."""

from hypothesis import strategies as st

inline = st.text(
    alphabet=st.sampled_from("ab Z.!? ,*_`[]()<>\t你好。é̂\U0001f469\u200d\U0001f4bb1#|-:\\&\u00a0\u3000"), max_size=60
)
_marks = [
    *("", "", "# One", "## Two", "### ", "===", "---", "```", "~~~~ py", "- a", "  - b", "1. x", "2) y", "> q", ">"),
    *("    code", "| a | b |", "|---|---|", "<div>", "</div>", "<!--", "[r]: /u", "* * *", "\tt", "- > - z", "  ```"),
]
_line = st.one_of(
    inline,
    st.sampled_from(_marks),
    st.builds("{}{}".format, st.sampled_from(["> ", "- ", "  ", "10. ", "   > ", "- - "]), inline),
    st.builds(
        lambda word, n: " ".join([word] * n), st.sampled_from(["word", "Ende.", "中文。", "x"]), st.integers(1, 80)
    ),
)
documents = st.lists(_line, max_size=40).map("\n".join)
