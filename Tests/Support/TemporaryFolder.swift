import Foundation

/// A folder that goes away with its owner; its path is short, because unix sockets want that.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() throws {
        path = "/tmp/martlet-test-" + String(UInt64.random(in: .min ... .max), radix: 36)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in the folder, whether or not it is there.
    package func file(_ name: String) -> String { path + "/" + name }

    /// Writes a file and returns its path.
    @discardableResult package func write(_ text: String, to name: String) throws -> String {
        try write(bytes: Array(text.utf8), to: name)
    }

    /// Writes a file that only its owner may read, and returns its path.
    @discardableResult package func write(bytes: [UInt8], to name: String) throws -> String {
        let target = file(name)
        try Data(bytes).write(to: URL(fileURLWithPath: target), options: .atomic)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: target)
        return target
    }
}
