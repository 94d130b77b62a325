export declare function ownLines(code: string): string[]
