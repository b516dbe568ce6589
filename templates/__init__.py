"""The HTML templates of the web apps."""
