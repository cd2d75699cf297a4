import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Admin responses` {
    @Test func `problems look like those of the public listener`() {
        let missing = AdminProblem.notFound.response("abc\"1")
        #expect(missing.status == 404)
        #expect(missing.fields.contains { $0 == ("Content-Type", "application/problem+json") })
        #expect(
            String(decoding: missing.body, as: UTF8.self)
                == #"{"type":"urn:martlet:problem:not_found","title":"Not Found","status":404,"code":"not_found","request_id":"abc\"1"}"#
                + "\n")
        let method = AdminProblem.methodNotAllowed(["GET", "HEAD"]).response("x")
        #expect(method.status == 405 && method.fields.contains { $0 == ("Allow", "GET, HEAD") })
    }

    @Test func `the kernel's texts are parsed, malformed ones are not`() {
        let limits =
            "Limit                     Soft Limit           Hard Limit           Units\n"
            + "Max open files            1024                 524288               files\n"
        let status = ProcessStatus(memoryAndThreads: "Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t9\n", limits: limits)
        #expect(status.residentBytes == 2048 * 1024 && status.threads == 9 && status.descriptorLimit == 1024)
        let strange = ProcessStatus(
            memoryAndThreads: "VmRSS:\nThreads: many\n",
            limits: "Max open files            unlimited            unlimited files\n")
        #expect(strange.residentBytes == nil && strange.threads == nil && strange.descriptorLimit == nil)
        let own = ProcessStatus.current()
        #expect((own.residentBytes ?? 0) > 0 && (own.threads ?? 0) > 0 && (own.openDescriptors ?? 0) > 0)
        #expect((own.descriptorLimit ?? 0) > 0 && (own.processorSeconds ?? 0) > 0)
    }
}
