"""The pages of the fake tool API, and a search over them. Knows words, nothing of HTTP."""

import re
from dataclasses import dataclass
from typing import Final

_WORD = re.compile(r"[a-z]{3,}")
# Words of a question that say nothing about its subject.
_COMMON = re.compile(r"and|are|can|did|does|for|from|has|have|how|that|the|there|was|what|where|which|who|why|with")


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `slug` is its address."""

    slug: str
    title: str
    text: str

    def summary(self) -> dict[str, str]:
        """What a search result shows."""
        return {"slug": self.slug, "title": self.title, "snippet": self.text.split(". ")[0] + "."}

    def whole(self) -> dict[str, str]:
        """What the page's own address answers."""
        return {"slug": self.slug, "title": self.title, "text": self.text}


PAGES: Final = (
    Page(
        "aurora",
        "Why the aurora has colours",
        "An aurora glows where electrons from space strike the upper air. Oxygen gives green at about 100 km and red "
        "above 200 km; nitrogen gives blue and violet. The colour therefore tells the height.",
    ),
    Page(
        "honeybees",
        "How honeybees tell where the flowers are",
        "A honeybee that found flowers dances on the comb. The angle of the dance to the vertical is the angle to the "
        "sun; the length of the waggle run tells the distance. Karl von Frisch worked this out in the 1940s.",
    ),
    Page(
        "lighthouses",
        "What the Fresnel lens did for lighthouses",
        "Augustin Fresnel cut the bulk from a lens and kept its surface in rings. From 1823 on, lighthouses with such "
        "lenses were seen more than 30 km away. The first one was lit at Cordouan in France.",
    ),
    Page(
        "sourdough",
        "What lives in a sourdough starter",
        "A sourdough starter holds wild yeast and lactic acid bacteria. The yeast makes the gas that lifts the bread; "
        "the bacteria make the acid that gives the taste and keeps other microbes away.",
    ),
    Page(
        "tape",
        "How magnetic tape remembers",
        "Magnetic tape is plastic film with a coat of iron oxide. A recording head turns a current into a pattern of "
        "magnetised grains; a playback head turns it back. Fritz Pfleumer patented it in 1928.",
    ),
    Page(
        "tides",
        "Why there are two tides a day",
        "The moon pulls the near side of the ocean more than the centre of the Earth, and the far side less. So the "
        "water stands high on both sides, and most coasts see two high tides in 24 hours and 50 minutes.",
    ),
)


def search(query: str, limit: int = 3) -> list[Page]:
    """The pages that share most words with the query, best first; equal ones by slug."""
    wanted = {word for word in _WORD.findall(query.lower()) if not _COMMON.fullmatch(word)}
    scored = [(len(wanted & _words(page)), page) for page in PAGES]
    hits = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].slug))
    return [page for _, page in hits[:limit]]


def find(slug: str) -> Page | None:
    """The page at an address."""
    return next((page for page in PAGES if page.slug == slug), None)


def _words(page: Page) -> set[str]:
    return set(_WORD.findall(f"{page.slug} {page.title} {page.text}".lower()))
