"""Collects the pages of the documentation: prepare.py RFEXEC OUT. Then: mkdocs build -f OUT/mkdocs.yml

Nothing is written twice: pages are README.md, docs and site/tutorials as they are, the help that RFEXEC
prints, and the public header's comments. Links between them are made those of the site; links to other
files of the source tree become words. Needs Python alone."""
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADER = "rfexec/include/rfexec/rfexec.h"
# What the program prints is up to 120 columns wide, and tables have up to 11 columns.
NARROW = """.md-typeset pre > code { font-size: .6rem; }
.md-grid { max-width: 70rem; }
.md-typeset table:not([class]) th, .md-typeset table:not([class]) td { min-width: 0; padding: .5em .7em; }
.md-typeset td code { word-break: normal; overflow-wrap: break-word; }
.md-typeset img { display: block; }
"""


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def page_map():
    """Page of the site for each file of the tree that is one."""
    pages = {"README.md": "index.md", HEADER: "reference/c.md"}
    for folder, to in (("docs", ""), ("docs/notes", "notes/"), ("docs/figures", "figures/"),
                       ("site/tutorials", "tutorials/")):
        for name in sorted(os.listdir(os.path.join(SOURCE, folder))):
            if os.path.isfile(os.path.join(SOURCE, folder, name)):
                pages[folder + "/" + name] = to + name
    return pages


def title(page):
    """What a link that shows a file's name shows instead: the page's name in the site's contents."""
    named = re.search(r"- (.*): %s$" % re.escape(page), read("site/mkdocs.yml"), re.M)
    return named[1] if named else page


def relink(text, path, pages):
    """The text of the file `path` with the site's links. Links of tutorials are the site's already."""

    def replace(match):
        words, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        target, hash_sign, anchor = target.partition("#")
        found = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if found in pages:
            if re.fullmatch(r"\[[\w/]+\.md\]", words):
                words = "[%s]" % title(pages[found])
            to = os.path.relpath(pages[found], os.path.dirname(pages[path]) or ".")
            return "%s(%s%s%s)" % (words, to, hash_sign, anchor)
        if not os.path.exists(os.path.join(SOURCE, found)):
            sys.exit("%s: no such file: %s" % (path, target))
        return words.lstrip("!")[1:-1]

    return re.sub(r"(!?\[[^]]*\])\(([^)\s]+)\)", replace, text)


def help_page(rfexec):
    """What `rfexec help` and `rfexec help COMMAND` print."""

    def printed(*arguments):
        return subprocess.run([rfexec, "help", *arguments], check=True, capture_output=True, text=True).stdout

    usage = printed()
    commands = [c for c in re.findall(r"^  ([a-z]+) +\S", usage.split("\n\n", 2)[2], re.M)
                if c not in ("help", "version")]
    if len(commands) < 10:
        sys.exit("rfexec help names %d commands" % len(commands))
    parts = ["# Commands\n\nWhat `rfexec help` prints.\n", "```text\n%s```\n" % usage]
    for command in commands:
        parts.append("## rfexec %s\n\n```text\n%s```\n" % (command, printed(command)))
    return "\n".join(parts)


def escaped(words):
    """Words as Markdown that shows them as they are, but for `code`."""
    parts = re.split(r"(`[^`]*`)", words)
    parts[::2] = [re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def comment_text(comment):
    """A comment of C as Markdown: indented lines are code, the rest is prose."""
    lines = [re.sub(r" ?\*/$|^ \* ?|^/\* ?", "", line) for line in comment.splitlines()]
    out = []
    for line in lines:
        code = line.startswith("    ")
        if code and (not out or not out[-1].startswith("    ")):
            out.append("")
        topic = re.match(r" ?([A-Z][a-z]+): ", line)  # begins a paragraph, as "Errors: "
        if topic and not code:
            out.append("\n**%s.** %s" % (topic[1], escaped(line[topic.end() :])))
        else:
            out.append(line if code else escaped(line.strip()))
    return "\n".join(out).strip() + "\n"


def names_of(declaration):
    """The name that a block of declarations goes by, and what it is."""
    for pattern in (r"^(?:struct|enum|union) (rfx_\w+)", r"^typedef [^;]*?\(?\*?\b(rfx_\w+)\)?\s*[;(]",
                    r"\b(rfx_\w+)\(", r"^#define (RFX_\w+)"):
        found = re.search(pattern, declaration, re.M)
        if found:
            return found[1]
    return None


def header_page(text):
    """The public header: a heading per declaration, its comment as prose, and the declaration."""
    intro = re.match(r"/\*.*?\*/", text, re.S)[0]
    body = text[len(intro) :]
    parts = ["# C\n", comment_text(intro), "The header is `rfexec/rfexec.h`, link with `-lrfexec`.\n"]
    for block in re.split(r"\n\n(?=\S)", body):
        block = block.strip("\n")
        section = re.fullmatch(r"/\* -+ (.*?) -+ \*/", block)
        if section:
            parts.append("## %s\n" % section[1].capitalize())
            continue
        comment = re.match(r"/\*.*?\*/\s*", block, re.S)
        declaration = block[comment.end() :] if comment else block
        name = names_of(declaration)
        if name is None or re.match(r"#if|#ifndef", declaration):
            continue  # guards, and what marks declarations
        parts.append("### %s\n" % escaped(name))
        if comment:
            parts.append(comment_text(comment[0]))
        parts.append("```c\n%s\n```\n" % declaration)
    page = "\n".join(parts)
    for name in re.findall(r"^RFX[\w ]*\bRFX_API\b[^;]*?\b(rfx_\w+)\(|^RFX_API\b[^;]*?\b(rfx_\w+)\(", text, re.M):
        name = name[0] or name[1]
        if not re.search(r"\b%s\(" % name, page):
            sys.exit("%s: %s is missing on the page" % (HEADER, name))
    return page


def limits_page(readme):
    """The README's last section, as a page of its own."""
    return "# Limits\n" + readme.split("\n## Limits\n", 1)[1].split("\n## ", 1)[0]


def write(out, name, text):
    path = os.path.join(out, "pages", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(rfexec, out):
    pages = page_map()
    shutil.rmtree(os.path.join(out, "pages"), ignore_errors=True)
    for path, page in pages.items():
        if path.endswith(".md"):
            text = read(path)
            write(out, page, text if path.startswith("site/") else relink(text, path, pages))
        elif path.startswith("docs/figures/"):
            os.makedirs(os.path.join(out, "pages", "figures"), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, path), os.path.join(out, "pages", page))
    write(out, "limits.md", relink(limits_page(read("README.md")), "README.md", pages))
    write(out, "reference/cli.md", help_page(rfexec))
    write(out, "reference/c.md", header_page(read(HEADER)))
    write(out, "narrow.css", NARROW)
    config = read("site/mkdocs.yml")
    more = [page for page in pages.values()
            if page.endswith(".md") and not re.search(r": %s$" % re.escape(page), config, re.M)]
    if more:  # pages that nobody has put into the order yet
        config += "  - More:\n" + "".join("      - %s\n" % page for page in more)
    with open(os.path.join(out, "mkdocs.yml"), "w", encoding="utf-8") as file:
        file.write(config)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
