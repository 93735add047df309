"""Origin servers behind the proxy: 25 generated web sites, files to download, and the lab's DNS names."""
