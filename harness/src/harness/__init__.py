"""Declared experiments on stores: a campaign file says what is compared, this package runs it, samples the machine
meanwhile, keeps the raw data and draws a report. It starts processes and reads files; it links nothing."""
