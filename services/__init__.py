"""Services: the programs. The only place, with app, where the sibling packages meet."""
