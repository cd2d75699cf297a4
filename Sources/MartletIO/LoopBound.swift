/// A value that lives on one loop's thread, held by things that are everywhere.
// @unchecked Sendable: every access checks that it is on the loop's thread, so there is only ever one at a time; the
// value is let go of on that thread by whoever ends its life with `value = nil`.
package final class LoopBound<Value>: @unchecked Sendable {
    package let loop: EventLoop
    private var stored: Value?

    package init(_ loop: EventLoop) { self.loop = loop }

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
