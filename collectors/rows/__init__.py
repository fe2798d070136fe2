"""From samples, second by second, to rows for the lake and series for the page. Pure: times are passed in."""
