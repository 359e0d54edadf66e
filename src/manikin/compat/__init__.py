"""What manikin uses of other libraries' private parts, one file per library.

Such a part may change in any release. When it does, one test in
``tests/compat/test_compat.py`` fails, and one file here changes. Everything else uses public
interfaces. This folder imports nothing of manikin.
"""
