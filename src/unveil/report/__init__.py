"""What an audit shows: figures and one self-contained page. No computation here."""
