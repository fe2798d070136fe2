"""Who holds what share of a device: ids, processes, pods and jobs, put together without a doubt left unsaid."""
