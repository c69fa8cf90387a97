import Buckia

// What an app is linked with that imports nothing else.
print(DatabaseManager("notes.sqlite").path)
