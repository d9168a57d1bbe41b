package shim

var LibraryFunctions = libraryFunctions
