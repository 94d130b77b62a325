/** Packs what npm would publish for this machine, and installs it below `folder`; resolves with the project's folder. */
export function installHere(folder: string): Promise<string>
