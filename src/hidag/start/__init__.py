"""Where Stage I begins: spectral, given Q, several."""
