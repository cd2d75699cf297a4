import Synchronization

/// A value that several threads share.
package final class Box<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    package init(_ value: Value) { mutex = Mutex(value) }

    package var value: Value { mutex.withLock { $0 } }

    /// Changes or reads the value exclusively.
    package func withLock<Result: Sendable>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try mutex.withLock { (value: inout sending Value) throws -> sending Result in
            var copy = value
            defer { value = copy }
            return try body(&copy)
        }
    }
}
