internal import MartletCore

/// The error codes of this module; `Plugins.md` lists them for operators.
extension ErrorCode {
    /// The file does not exist or cannot be read.
    static let pluginUnreadable: ErrorCode = "plugin.file_unreadable"
    /// Not an ELF file, or a damaged one.
    static let pluginNotELF: ErrorCode = "plugin.not_elf"
    /// For another machine or word size, or no shared library.
    static let pluginWrongArchitecture: ErrorCode = "plugin.wrong_architecture"
    /// It has no symbol `martlet_plugin` or no note.
    static let pluginNoEntry: ErrorCode = "plugin.no_entry"
    /// Built for another version of the public API.
    static let pluginAPIVersion: ErrorCode = "plugin.api_version"
    /// Built by another compiler.
    static let pluginCompiler: ErrorCode = "plugin.compiler"
    /// Built against other public symbols.
    static let pluginStamp: ErrorCode = "plugin.stamp"
    /// Owned by a user who is neither root nor the gateway's.
    static let pluginOwner: ErrorCode = "plugin.owner"
    /// Writable by its group or others.
    static let pluginWritable: ErrorCode = "plugin.writable"
    /// Warning: in a directory that others may write to.
    static let pluginDirectoryWritable: ErrorCode = "plugin.directory_writable"
    /// A kind of provider that exists already.
    static let pluginKindExists: ErrorCode = "plugin.kind_exists"
    /// It needs symbols that the gateway does not have.
    static let pluginUndefinedSymbols: ErrorCode = "plugin.undefined_symbols"
    /// It brings Swift's library along.
    static let pluginOwnRuntime: ErrorCode = "plugin.own_runtime"
    /// Loading it failed: its constructors crash, exit or hang, or a library that it needs is missing.
    static let pluginLoadFailed: ErrorCode = "plugin.load_failed"
    /// Warning: the file has changed since it was loaded.
    static let pluginChanged: ErrorCode = "plugin.changed"
}
