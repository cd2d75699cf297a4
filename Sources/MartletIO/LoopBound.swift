/// A value confined to the thread of a loop, in a `Sendable` reference.
// @unchecked Sendable: every access checks that it is on the loop's thread, so accesses never overlap; the owner
// releases the value on that thread with `value = nil`.
package final class LoopBound<Value>: @unchecked Sendable {
    package let loop: ServiceLoop
    private var stored: Value?

    package init(_ loop: ServiceLoop) { self.loop = loop }

    /// The value; traps off the loop.
    package var value: Value? {
        get {
            loop.preconditionInLoop()
            return stored
        }
        set {
            loop.preconditionInLoop()
            stored = newValue
        }
    }
}
