private import CLinux

/// Starts a detached thread that runs `body` once.
package func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
    final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
    let start = unsafe Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
    var thread = pthread_t()
    let result = unsafe pthread_create(
        &thread, nil,
        { context in
            guard let context = unsafe context else { return nil }
            let start = unsafe Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
            unsafe pthread_setname_np(pthread_self(), String(start.name.prefix(15)))
            start.body()
            return nil
        }, start)
    guard result == 0 else {
        unsafe Unmanaged<Start>.fromOpaque(start).release()
        return
    }
    pthread_detach(thread)
}
