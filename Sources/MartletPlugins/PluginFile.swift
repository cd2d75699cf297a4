/// A library before any of its code runs: its bytes, and who may change them.
package struct PluginFile {
    package var bytes: [UInt8]
    /// The owner of the file that links lead to.
    package var owner: UInt32
    package var mode: UInt32
    /// A directory on the way to the file that others than its owner may write to.
    package var openDirectory: String?

    package init(bytes: [UInt8], owner: UInt32, mode: UInt32, openDirectory: String? = nil) {
        self.bytes = bytes
        self.owner = owner
        self.mode = mode
        self.openDirectory = openDirectory
    }
}
