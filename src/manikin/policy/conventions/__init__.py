"""What the policies of SIMPLER expect and answer: pictures, histories and actions of RT-1 and Octo."""
