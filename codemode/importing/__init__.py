"""From other clients' server configurations to a manifest of ours, and the first manifest itself."""
