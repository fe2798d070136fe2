"""The portal: pages that read published builds and show them."""
