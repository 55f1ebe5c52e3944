"""An SVG bar chart of firn and its peers: one block a format, nanoseconds on a logarithmic scale."""
import math
from html import escape

# Key of the rows, title of the block; only blocks with a peer, or with a baseline to compare, are drawn.
BLOCKS = [
    ("snowflake", "Snowflake, one"),
    ("uuid4", "UUID v4, 16 bytes"),
    ("uuid4.text", "UUID v4, text"),
    ("uuid7", "UUID v7, 16 bytes"),
    ("uuid7.text", "UUID v7, text"),
    ("uuid1", "UUID v1, 16 bytes"),
    ("ulid", "ULID, 16 bytes"),
    ("ulid.text", "ULID, text"),
    ("ulid.mono.text", "ULID monotonic, text"),
    ("nanoid.text", "NanoID"),
    ("uuid.parse", "parse a UUID"),
    ("ulid.parse", "parse a ULID"),
]
REFERENCE = {"snowflake": ("clock.coarse", "only read the coarse clock")}

WIDTH, LEFT, RIGHT, TOP = 900, 300, 90, 86
BAR, GAP, BLOCK_GAP = 15, 4, 16

STYLE = """
  svg { font-family: system-ui, sans-serif; font-size: 12px; }
  .page { fill: #ffffff; } .ink { fill: #1f2328; } .dim { fill: #59636e; }
  .title { font-size: 17px; font-weight: 600; } .block { font-weight: 600; }
  .firn { fill: #0969da; } .peer { fill: #afb8c1; } .base { fill: none; stroke: #59636e; stroke-dasharray: 3 2; }
  .strong { font-weight: 600; } .grid { stroke: #d1d9e0; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .ink { fill: #f0f6fc; } .dim { fill: #9198a1; }
    .firn { fill: #4493f8; } .peer { fill: #515c68; } .base { stroke: #9198a1; } .grid { stroke: #2a313a; }
  }
"""


def label(ns):
    if ns >= 10000:
        return f"{ns / 1000:,.0f} µs"
    return f"{ns:,.0f} ns" if ns >= 100 else f"{ns:.1f} ns"


def blocks(firn, peers):
    own = {row["key"]: row["median_ns"] for row in firn}
    for key, title in BLOCKS:
        if key not in own:
            continue
        bars = [("firn", "firn", own[key])]
        if key in REFERENCE and REFERENCE[key][0] in own:
            bars.append(("base", REFERENCE[key][1], own[REFERENCE[key][0]]))
        others = sorted((row for row in peers if row["key"] == key), key=lambda row: row["median_ns"])
        bars += [("peer", f"{row['peer']}: {row['what']}", row["median_ns"]) for row in others]
        if len(bars) > 1:
            yield title, bars


def svg(firn, peers, how):
    drawn = list(blocks(firn, peers))
    values = [ns for _, bars in drawn for _, _, ns in bars]
    low, high = 1.0, 10 ** math.ceil(math.log10(max(values + [10])))
    span = WIDTH - LEFT - RIGHT

    def x(ns):
        return LEFT + span * math.log(max(ns, low) / low) / math.log(high / low)

    body, y = [], TOP
    for title, bars in drawn:
        body.append(f'<text class="ink block" x="20" y="{y + 12}">{escape(title)}</text>')
        y += BAR + GAP
        for kind, name, ns in bars:
            strong = " strong" if kind == "firn" else ""
            ink = "ink" if kind == "firn" else "dim"
            body.append(
                f'<text class="{ink}{strong}" x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
                f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{x(ns) - LEFT:.1f}" height="{BAR}" rx="2"/>'
                f'<text class="{ink}{strong}" x="{x(ns) + 6:.1f}" y="{y + 12}">{label(ns)}</text>')
            y += BAR + GAP
        y += BLOCK_GAP
    height = y + 28

    grid, mark = [], low
    while mark <= high:
        text = f"{mark:g} ns" if mark < 1000 else f"{mark / 1000:g} µs"
        grid.append(f'<line class="grid" x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP - 8}" y2="{y}"/>'
                    f'<text class="dim" x="{x(mark):.1f}" y="{TOP - 14}" text-anchor="middle">{text}</text>')
        mark *= 10
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Time to make or parse one ID, firn and others">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        '<text class="ink title" x="20" y="30">Time to make or parse one ID: shorter is better, each line is ten times'
        ' the one before</text>',
        f'<text class="dim" x="20" y="50">medians of one run of make bench, {escape(how["date"])},'
        f' {escape(how["cpu"])}</text>',
        *grid, *body, "</svg>", ""])
