"""The viewer: what a page shows of a tape, and the page. Knows no process and no file of the user's."""
